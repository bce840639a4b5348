import { existsSync, mkdirSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { usageError } from '../session/errors.js';
import { replaceFile, writeTo } from '../session/files.js';
import type { Session } from '../session/session.js';

const quoted = (text: string): string => `'${text.replace(/['\\]/g, '\\$&')}'`;

/** With `defineSource`, the types of `sluice types` apply. */
const TEMPLATES = {
  timer: (name: string) => `import { createHash } from 'node:crypto';

export default defineSource({
  name: ${quoted(name)},
  version: '0.0.1',
  dedupe: 'unique',
  props: {
    url: { type: 'string', label: 'URL', description: 'Returns JSON.' },
    timer: { type: '$.interface.timer', default: { intervalSeconds: 60 } },
  },
  async run() {
    const response = await fetch(this.url);
    if (!response.ok) throw new Error(\`\${this.url} returned \${response.status}\`);
    const body = await response.json();
    // a body that was emitted before has the same id, and is skipped
    const id = createHash('sha256').update(JSON.stringify(body)).digest('hex');
    this.$emit(body, { id, summary: 'changed' });
  },
});
`,
  http: (name: string) => `export default defineSource({
  name: ${quoted(name)},
  version: '0.0.1',
  props: {
    http: { type: '$.interface.http', customResponse: true },
  },
  async run(request) {
    this.$emit(request.body, { summary: \`\${request.method} \${request.path}\` });
    this.http.respond({ status: 202 });
  },
});
`,
};

/** `sluice init FILE`: writes the beginning of a component. */
export function init(session: Session, file: string, { template = 'timer' }: { template?: string }): void {
  const write = Object.entries(TEMPLATES).find(([name]) => name === template)?.[1];
  if (!write) throw usageError(`there is no template ${template}; known are ${Object.keys(TEMPLATES).join(', ')}`);
  if (['.', '..'].includes(basename(file)) || /[\\/]$/.test(file)) throw usageError(`${file} is a folder: add the name of the file`);
  const path = /\.[cm]?[jt]s$/.test(file) ? file : `${file}.mjs`;
  if (existsSync(path)) throw usageError(`${path} exists already`);
  const base = basename(path).replace(/\.[^.]+$/, '');
  const name = base.replace(/[-_]+/g, ' ').replace(/^./, (letter) => letter.toUpperCase());
  writeTo(path, () => {
    mkdirSync(dirname(path), { recursive: true });
    replaceFile(path, write(name));
  });
  const argument = /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
  session.note(`wrote ${path}; next: sluice dev ${argument}${template === 'timer' ? ' -p url=https://…' : ''}`);
}
