// What is sent and what stays: the picture is drawn by sent.py, this only puts it in its place.
export default function ({ data, parentElement }) {
  const host = parentElement.querySelector('.gle-sent');
  if (host.picture !== data.picture) host.innerHTML = host.picture = data.picture;
  return () => {};
}
