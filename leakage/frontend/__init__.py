"""The parts that pages and routes share for browsers: JavaScript modules and HTML templates."""
