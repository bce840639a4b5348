import { buffer as readAll } from 'node:stream/consumers';
import { retryingFetch, type RetryOptions, SluiceClient, SluiceError } from '@sluice/client';
import { CliError, usageError } from './errors.js';
import { utf8 } from './files.js';
import { type Column, type Format, FORMATS, itemText, listText, printable, styled, written } from './output.js';
import { type Access, findAccess, Profiles } from './profiles.js';
import { askOn, openTerminal } from './question.js';

/** The options of every command. */
export interface CommonOptions {
  output?: string;
  profile?: string;
  debug?: boolean;
}

/** After this time without a response, people wonder whether one will come. */
const SLOW_MS = 5_000;

/** The means of a command: the client of the account, and the terminal. */
export class Session {
  readonly env = process.env;
  readonly profiles = new Profiles(process.env);
  private known: SluiceClient | undefined;

  constructor(
    private readonly options: CommonOptions,
    private readonly limits: Pick<RetryOptions, 'retries' | 'timeoutMs'> = {},
  ) {}

  /** The same session with other limits of requests. */
  limited(limits: Pick<RetryOptions, 'retries' | 'timeoutMs'>): Session {
    return new Session(this.options, limits);
  }

  get access(): Access {
    return findAccess(this.env, this.profiles, this.options.profile);
  }

  get sluice(): SluiceClient {
    this.known ??= this.clientOf(this.access);
    return this.known;
  }

  /** A request to a path of the API that the client has no method for. Throws as the client does. */
  async request(path: string, init: { method?: string; body?: string; headers?: Record<string, string> } = {}): Promise<Response> {
    const { url, key } = this.access;
    const response = await retryingFetch(this.retrying)(url + path, {
      ...init,
      headers: { authorization: `Bearer ${key}`, 'user-agent': 'sluice-cli', ...init.headers },
    });
    if (response.ok) return response;
    const problem: unknown = await response.json().catch(() => null);
    throw new SluiceError(response.status, problem ?? {}, response.headers.get('retry-after') ?? undefined);
  }

  private get retrying(): RetryOptions {
    return { ...this.limits, fetch: (input, init) => this.send(input, init) };
  }

  /** Shows on a terminal that a server does not respond: several attempts may take minutes. */
  private async send(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
    let isShown = false;
    const timer = setTimeout(() => {
      this.progress(`waiting for ${new URL((input as Request).url).origin}`);
      isShown = true;
    }, SLOW_MS);
    try {
      return await (this.options.debug ? debugFetch : fetch)(input, init);
    } finally {
      clearTimeout(timer);
      if (isShown) this.progress();
    }
  }

  get format(): Format {
    const { output = 'table' } = this.options;
    const format = FORMATS.find((each) => each === output);
    if (!format) throw usageError(`-o must be one of ${FORMATS.join(', ')}, not ${output}`);
    return format;
  }

  /** Whether a person can reply to a question, wherever the output goes. */
  get isInteractive(): boolean {
    return Boolean(process.stdin.isTTY);
  }

  clientOf({ url, key }: { url: string; key: string }): SluiceClient {
    return new SluiceClient({ url, key, headers: { 'user-agent': 'sluice-cli' }, ...this.retrying });
  }

  print(text: string): void {
    this.printStyled(printable(text));
  }

  /** Prints text with colours, which is printable otherwise. */
  printStyled(text: string): void {
    process.stdout.write(text);
  }

  /** For a command without an end: like `printStyled`, but resolves when the reader has taken the text, so that a slow reader slows the command down. */
  printNext(text: string): Promise<void> {
    return written(process.stdout, text);
  }

  /** For a command without an end: exits when nobody reads standard output any more. */
  endWithReader(): void {
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(0);
    });
  }

  /** A remark for people: on standard error, because a program may be reading standard output. */
  note(text: string): void {
    process.stderr.write(`${styled('dim', text, process.stderr)}\n`);
  }

  warn(text: string): void {
    process.stderr.write(`${styled('yellow', text, process.stderr)}\n`);
  }

  /** Shows on a terminal how far long work is, in one line that the next call replaces; without a text, removes it. */
  progress(text = ''): void {
    if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${styled('dim', text, process.stderr)}`);
  }

  list<T>(items: T[], columns: Column<T>[]): void {
    this.print(listText(items, columns, this.format));
  }

  item(item: unknown): void {
    this.print(itemText(item, this.format));
  }

  /** Standard input as text. Throws a usage error if it is not UTF-8. */
  async stdin(): Promise<string> {
    return utf8(await this.stdinBytes(), 'standard input');
  }

  stdinBytes(): Promise<Buffer> {
    return readAll(process.stdin);
  }

  /** Asks for a line on a terminal. @param hidden does not show what is typed */
  async ask(question: string, { hidden = false } = {}): Promise<string> {
    // otherwise nobody would see the question, and the terminal would show what is typed
    const output = process.stderr.isTTY ? process.stderr : openTerminal();
    try {
      return await askOn({ input: process.stdin, output }, printable(question), { hidden });
    } finally {
      if (output !== process.stderr) output.destroy();
    }
  }

  /** Asks before something is destroyed. A script cannot reply: without a terminal, the command proceeds as with `--yes`. */
  async confirm(question: string, yes: boolean | undefined): Promise<void> {
    if (yes || !this.isInteractive) return;
    if (!/^y(es)?$/i.test(await this.ask(`${question} [y/N] `))) throw new CliError('cancelled');
  }
}

/** Logs requests without their headers, bodies and queries, which may contain secrets. */
const debugFetch: typeof fetch = async (input, init) => {
  const request = new Request(input, init);
  const start = performance.now();
  const name = `${request.method} ${new URL(request.url).origin}${new URL(request.url).pathname}`;
  const log = (result: string): boolean => process.stderr.write(`[debug] ${name} ${result} ${Math.round(performance.now() - start)} ms\n`);
  try {
    const response = await fetch(request);
    log(`${response.status} ${response.headers.get('x-request-id') ?? ''}`);
    return response;
  } catch (error) {
    log(`failed: ${(error as Error).message}`);
    throw error;
  }
};
