"""What users do by hand, such as record an update or pause a consumer: shared by command line, API and pages."""
