import { SourceMap, type SourceMapping, type SourceMapPayload } from 'node:module';

/** Of the runtime's bundler, which starts outside of it. */
const bundlerFolder = '/bundled/';
const mark = '\n//# sourceMappingURL=data:application/json;';

/** The source maps of the components in this process, by their folder (`component:///0a1b/`). They are parsed when an error needs them. */
const maps = new Map<string, { text: string; parsed?: SourceMap }>();

/** Remembers how the lines of code that a bundler or the TypeScript parser has written correspond to those of its author. */
export function learnAuthorLines(url: string, code: string): void {
  const at = code.lastIndexOf(mark);
  if (at >= 0) maps.set(folderOf(url), { text: code.slice(code.indexOf('base64,', at) + 'base64,'.length).split('\n', 1)[0]! });
}

/** Replaces the positions of components in a stack by those in the files of their authors: `component:///0a1b/lib/x.ts:3:9`. */
export function withAuthorLines(stack: string): string {
  if (maps.size === 0) return stack;
  const positions = /(component:\/\/\/\w+\/)component\.[jt]s:(\d+)(?::(\d+))?/g;
  return stack.replace(positions, (position, folder: string, line: string, column?: string) => {
    // V8 reports no column of a syntax error: the last statement of the line that has a position
    const found: Partial<SourceMapping> = mapOf(folder)?.findEntry(Number(line) - 1, column ? Number(column) - 1 : Infinity) ?? {};
    const { originalSource, originalLine = 0, originalColumn = 0 } = found;
    // what a bundler has added has no source
    if (originalSource === undefined) return position;
    return `${folder}${fileOf(originalSource)}:${originalLine + 1}${column ? `:${originalColumn + 1}` : ''}`;
  });
}

/** A line of a component; `file` is null if the component is one file. */
export interface Place {
  file: string | null;
  line: number | null;
}

/** The first line of the author that a stack with the author's lines names. */
export function firstPlace(stack: string): Place {
  const [, file = '', line] = /component:\/\/\/\w+\/(.{1,1000}?):(\d+)/.exec(stack) ?? [];
  return { file: /^(?:component\.[jt]s)?$/.test(file) ? null : file, line: line === undefined ? null : Number(line) };
}

/** A frame of the runner or of Node. What `inspect` writes behind it (` {`, `,`) is the first group. */
const foreignFrame = /\n[ \t]+at [^\n]*(?:\/runner\/runner\.cjs|node:)[^\n]*?:\d+:\d+\)?([^\n]*)/g;

/** A text with its stacks as the author of a component needs them: positions in the author's files, and frames of the author's code and of packages only. */
export function forAuthor(text: string): string {
  return withAuthorLines(text.replace(foreignFrame, '$1'));
}

function mapOf(folder: string): SourceMap | undefined {
  const map = maps.get(folder);
  if (!map) return undefined;
  try {
    map.parsed ??= new SourceMap(JSON.parse(Buffer.from(map.text, 'base64').toString()) as SourceMapPayload);
  } catch {
    maps.delete(folder);
  }
  return map.parsed;
}

const folderOf = (url: string): string => url.slice(0, url.lastIndexOf('/') + 1);

/** The path below the author's folder. The runtime's bundler reports its own folder as well, and the TypeScript parser the whole address. */
function fileOf(source: string): string {
  const [, path = source] = /^component:\/\/\/\w+\/(.*)$/.exec(source) ?? [];
  const at = path.startsWith('../') || path.startsWith('/') ? path.indexOf(bundlerFolder) : -1;
  return at < 0 ? path : path.slice(at + bundlerFolder.length);
}
