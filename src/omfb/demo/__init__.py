"""What omfb does, shown on data that come with it: `omfb demo`.

==================  =============================================================================
`air`               gaps of an hourly table, filled by omfb and by its peers
`photograph`        a photograph with half of its pixels missing, restored from its patches
`figures`           what is shown of them
`demo`              runs both and the paper's experiments, and writes the report
==================  =============================================================================
"""
