const DIM = 2;
const RED = 31;
const GREEN = 32;
const YELLOW = 33;
const CYAN = 36;

// Fields of pino that are in every line and not interesting in a terminal.
const SILENT = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'name', 'app', 'service', 'err', 'v']);

/**
 * Formats an app's JSON line: `2026-01-31 12:00:01.123 routing      delivery.attempted status=200 duration_ms=3`. In a terminal it has colours and no date.
 * A line that is not JSON is returned unchanged. Lines and errors of components appear with the name of the source. Further lines of a text are indented:
 * only the first one of an entry begins with the time, so that a text cannot look like an entry of another service.
 *
 * @param {string} app
 * @param {string} line
 * @param {{ isTerminal?: boolean }} [options]
 * @returns {string}
 */
export function formatLogLine(app, line, options) {
  return format(app, line, options).replaceAll('\n', '\n  ');
}

/** @type {typeof formatLogLine} */
function format(app, line, { isTerminal = false } = {}) {
  /** @param {number} code @param {string} text */
  const paint = (code, text) => (isTerminal && code && text ? `\u001b[${code}m${text}\u001b[0m` : text);
  const entry = parse(line);
  const { date, time } = local(entry?.time);
  const at = isTerminal ? paint(DIM, time) : `${date} ${time}`;
  const who = paint(CYAN, app.padEnd(12));
  if (!entry) return `${at} ${who} ${printable(line)}`;
  if (entry.msg === 'component.logged' || entry.msg === 'component.threw') {
    const level = entry.msg === 'component.threw' ? 'error' : entry.console;
    const { word, code } = severity(level);
    const text = printable(entry.stack ?? entry.message).replace(/component:\/\/\/\w+\//g, '');
    return `${at} ${paint(GREEN, printable(entry.source).padEnd(12))} ${paint(code, word + text)}`;
  }

  const { word, code } = severity(entry.level);
  const fields = Object.entries(entry)
    .filter(([name]) => !SILENT.has(name))
    .map(
      ([name, value]) =>
        ` ${paint(DIM, `${printable(name)}=`)}${printable(typeof value === 'string' ? quoted(value) : JSON.stringify(value))}`,
    );
  const trouble = entry.err ? `\n${printable(entry.err.stack ?? entry.err.message ?? JSON.stringify(entry.err))}` : '';
  return `${at} ${who} ${paint(code, word + printable(entry.msg))}${fields.join('')}${paint(DIM, trouble)}`;
}

/**
 * @param {string} line
 * @returns {Record<string, any> | null}
 */
function parse(line) {
  if (!line.startsWith('{')) return null;
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

/** @param {unknown} instant milliseconds or ISO */
function local(instant) {
  const given = new Date(/** @type {string | number} */ (instant ?? NaN));
  const at = Number.isNaN(given.getTime()) ? new Date() : given;
  /** @param {number} value @param {number} digits */
  const pad = (value, digits = 2) => String(value).padStart(digits, '0');
  return {
    date: `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`,
    time: `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`,
  };
}

/**
 * Pino's levels: 30 is information, 40 a warning; from 50 on, a person must act.
 * @param {unknown} level a number, or its name
 */
function severity(level) {
  const value = { warn: 40, error: 50, fatal: 60 }[String(level)] ?? Number(level);
  if (value >= 50) return { word: 'ERROR ', code: RED };
  if (value >= 40) return { word: 'WARN ', code: YELLOW };
  return { word: '', code: 0 };
}

/** @param {string} value */
const quoted = (value) => (/^[^\s"=]+$/.test(value) ? value : JSON.stringify(value));

/**
 * Text from a log, without control characters but the line break and the tab, other line breaks and changes of the direction of text: components and senders of
 * requests must not control the terminal.
 * @param {unknown} text
 */
const printable = (text) =>
  String(text ?? '').replace(
    /[^\P{Cc}\n\t]|[\u2028-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
