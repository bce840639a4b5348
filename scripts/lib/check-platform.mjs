// Imported before everything else: an old Node must get a sentence, not a stack.
const [major] = process.versions.node.split('.');
if (Number(major) < 20) exit(`Sluice needs Node 20 or newer, and this is Node ${process.versions.node}.`);
if (process.platform === 'win32') exit('Sluice runs on Linux and macOS: on Windows use WSL, or docker compose up.');

/** @param {string} sentence */
function exit(sentence) {
  console.error(sentence);
  process.exit(1);
}
