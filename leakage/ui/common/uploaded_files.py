"""Streamlit's keeper of uploaded files, which tells the quota what was asked for, what is held and what is gone."""

from collections.abc import Sequence

from streamlit.runtime import memory_uploaded_file_manager
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec, UploadFileUrlInfo

from leakage.runs.upload_quota import QUOTA


class CountedFiles(MemoryUploadedFileManager):
    """The same, counted."""

    def get_upload_urls(self, session_id: str, file_names: Sequence[str]) -> list[UploadFileUrlInfo]:
        """The addresses for files that a page asks for; no other is taken."""
        urls = super().get_upload_urls(session_id, file_names)
        QUOTA.expect(session_id, (url.file_id for url in urls))
        return urls

    def add_file(self, session_id: str, file: UploadedFileRec) -> None:
        """Keep a file."""
        super().add_file(session_id, file)
        QUOTA.hold(session_id, file.file_id, len(file.data))

    def remove_file(self, session_id: str, file_id: str) -> None:
        """Drop a file."""
        super().remove_file(session_id, file_id)
        QUOTA.drop(session_id, file_id)

    def remove_session_files(self, session_id: str) -> None:
        """Drop all files of a session."""
        super().remove_session_files(session_id)
        QUOTA.drop_session(session_id)


def count_files() -> None:
    """Let Streamlit keep files so, from now on: it looks the class up by its name when an app is made, and no option names another."""
    setattr(memory_uploaded_file_manager, "MemoryUploadedFileManager", CountedFiles)  # noqa: B010
