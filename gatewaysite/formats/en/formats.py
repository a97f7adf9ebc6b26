"""Dates and times of the admin: sortable, 24 hours, to the second (all of them UTC)."""

DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
TIME_FORMAT = "H:i:s"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i:s"
YEAR_MONTH_FORMAT = "Y-m"
FIRST_DAY_OF_WEEK = 1
