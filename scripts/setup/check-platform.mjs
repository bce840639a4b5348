// Imported before everything else: an old Node must print a sentence, not a stack trace.
const [major] = process.versions.node.split('.');
if (Number(major) < 20) exit(`Sluice requires Node 20 or newer; this is Node ${process.versions.node}.`);
if (process.platform === 'win32') exit('Sluice runs on Linux and macOS. On Windows, use WSL or docker compose up.');

/** @param {string} sentence */
function exit(sentence) {
  console.error(sentence);
  process.exit(1);
}
