"""The parts of the page Audit: files of a recorded update, what is known of the client, and what attacks found."""
