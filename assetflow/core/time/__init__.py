"""Times: cron expressions, timetables, and the runs that they call for."""
