"""The paper, reproduced: nothing in here is needed to use omfb.

==================  =============================================================================
`competitors`       what the paper compares with: SGMF and NMF
`experiments`       the two experiments, their images, and how open settings were chosen
`reproduce`         runs experiments and writes their results: `omfb reproduce`
`figures`           the paper's figures
`report`            what they add to a report
==================  =============================================================================
"""
