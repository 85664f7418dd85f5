"""The paper, reproduced: nothing in here is needed to use omfb.

==================  =============================================================================
`competitors`       what the paper compares with: SGMF and NMF
`experiments`       the two experiments, their images, and how open settings were chosen
`reproduce`         runs experiments and writes their results: `omfb reproduce`
`figures`           the paper's figures
`report`            the page that reports which results were reproduced
`results_folder`    the folder it is written to, all at once or not at all
`environment`       versions and hardware, as stated in the report
==================  =============================================================================
"""
