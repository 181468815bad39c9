"""Tables, figures and HTML pages of studies."""
