"""What the web server does beside serving pages: our routes, and a dispatcher that is kept alive."""
