"""The kinds of sources: brokers and file systems, each with a library of its own that an extra installs."""
