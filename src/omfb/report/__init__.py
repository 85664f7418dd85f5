"""Reports of what was run: one self-contained page, its figures, and every number.

==================  =============================================================================
`outcome`           what an experiment returns: numbers, claims, pictures
`page`              the page, and the pieces of HTML it is made of
`drawing`           the look of figures, as files and as parts of a page
`folder`            the folder it is written to, all at once or not at all
`environment`       versions and hardware, as stated in the report
==================  =============================================================================
"""
