// Sends a file as the body of a request, with its progress: fetch() does not report how much has been sent.
const LOST = 'The connection was lost. Choose the file again.';
const STOPPED = 'Stopped.';

/**
 * Sends a file to an address, or deletes what is there.
 * @param {string} address below this server
 * @param {File | null} file null: delete
 * @param {(done: number) => void} progress is called with the number of bytes sent
 * @returns {{ problem: Promise<string>, abort: () => void }} `problem` becomes a sentence, or "" if all went well
 */
export function transfer(address, file, progress) {
  const request = new XMLHttpRequest();
  /** @type {Promise<string>} */
  const problem = new Promise((resolve) => {
    request.upload.addEventListener('progress', (event) => progress(event.loaded));
    request.addEventListener('load', () => resolve(request.status < 300 ? '' : request.responseText || `Error ${request.status}.`));
    request.addEventListener('error', () => resolve(LOST));
    request.addEventListener('abort', () => resolve(STOPPED));
  });
  request.open(file ? 'PUT' : 'DELETE', address);
  if (file) request.setRequestHeader('Content-Type', 'application/octet-stream');
  request.send(file);
  return { problem, abort: () => request.abort() };
}
