/**
 * Calls back for each line of a stream. Only `\n` ends a line: `readline` also splits at U+2028 and U+2029, which JSON does not escape, so that the rest
 * of a value would look like another line.
 *
 * @param {import('node:stream').Readable} stream
 * @param {(line: string) => void} onLine
 */
export function forEachLine(stream, onLine) {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (/** @type {string} */ text) => {
    const [first = '', ...others] = text.split('\n');
    rest += first;
    for (const next of others) {
      onLine(rest);
      rest = next;
    }
  });
  stream.on('end', () => rest !== '' && onLine(rest));
}
