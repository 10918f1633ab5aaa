"""What tests need around them: servers, a clean shell, nothing left behind."""
