"""Streamlit's store of uploaded files, extended to report every upload and deletion to the upload quota."""

from collections.abc import Sequence

from streamlit.runtime import memory_uploaded_file_manager
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec, UploadFileUrlInfo

from leakage.runs.upload_quota import QUOTA


class CountedFiles(MemoryUploadedFileManager):
    """The store of uploaded files, which also reports to the quota."""

    def get_upload_urls(self, session_id: str, file_names: Sequence[str]) -> list[UploadFileUrlInfo]:
        """Return the addresses to which a page may upload these files, and let the quota expect them; it refuses all others."""
        urls = super().get_upload_urls(session_id, file_names)
        QUOTA.expect(session_id, (url.file_id for url in urls))
        return urls

    def add_file(self, session_id: str, file: UploadedFileRec) -> None:
        """Store a file and count its bytes."""
        super().add_file(session_id, file)
        QUOTA.hold(session_id, file.file_id, len(file.data))

    def remove_file(self, session_id: str, file_id: str) -> None:
        """Delete a file and its bytes from the count."""
        super().remove_file(session_id, file_id)
        QUOTA.drop(session_id, file_id)

    def remove_session_files(self, session_id: str) -> None:
        """Delete all files of a session and their bytes from the count."""
        super().remove_session_files(session_id)
        QUOTA.drop_session(session_id)


def count_files() -> None:
    """Make Streamlit use `CountedFiles`. It has no option for this: it looks its class up by name when it creates an app."""
    setattr(memory_uploaded_file_manager, "MemoryUploadedFileManager", CountedFiles)  # noqa: B010
