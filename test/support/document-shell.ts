import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type CodeBlock, fileOf, onlyReads, outputLines, outputPattern, SKIPPED } from '../../scripts/language/code-blocks.mjs';
import { appEnvironment } from '../../scripts/processes/apps.mjs';
import { inRoot } from '../../scripts/shell/paths.mjs';

/** How long a block may take, and how long its output may take to appear. */
const BLOCK_MS = 240_000;
const OUTPUT_MS = 60_000;

/** The environment of a person at a terminal: without what npm and the tests have set. */
export const userEnvironment = (): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(Object.entries(appEnvironment({})).filter(([name]) => !name.startsWith('SLUICE_'))),
  NO_COLOR: '1',
});

/** A shell in a folder like a clone of the repository, which executes the blocks of one document in their order. */
export class DocumentShell {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluice-document-'));
  private readonly shell: ChildProcess;
  private output = '';
  private blocks = 0;
  private seen = 0;
  private last?: CodeBlock;

  /** @param settings the values of the variables that the document sets in `sh settings` */
  constructor(private readonly settings: Record<string, string>) {
    for (const part of ['package.json', 'node_modules', 'examples', 'components', 'packages', 'bench'])
      symlinkSync(inRoot(part), join(this.folder, part));
    this.shell = spawn('bash', ['--noprofile', '--norc'], {
      cwd: this.folder,
      detached: true,
      env: { ...userEnvironment(), XDG_CONFIG_HOME: join(this.folder, '.config'), ...settings },
    });
    for (const stream of [this.shell.stdout!, this.shell.stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    this.shell.stdin!.on('error', () => {});
    this.shell.stdin!.write('exec 2>&1; set -eo pipefail\n');
  }

  /** Throws if the block fails. Returns false if the rest of the document cannot be executed here. */
  async execute(block: CodeBlock, registryResponds: () => boolean): Promise<boolean> {
    const file = fileOf(block);
    if (file !== undefined) this.write(file, block.text);
    else if (block.language === 'text' && block.mark === 'output') await this.expect(block);
    else if (block.language === 'sh' && block.mark === 'settings') this.checkSettings(block);
    else if (block.language === 'sh' && block.mark === 'install' && !registryResponds()) return false;
    else if (block.language === 'sh' && !Object.hasOwn(SKIPPED, block.mark)) await this.run(block);
    return true;
  }

  /** Ends the shell and everything it started. */
  close(): void {
    try {
      process.kill(-this.shell.pid!, 'SIGKILL');
    } catch {
      // it has ended
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  private write(file: string, text: string): void {
    mkdirSync(dirname(join(this.folder, file)), { recursive: true });
    writeFileSync(join(this.folder, file), text);
  }

  private checkSettings({ line, text }: CodeBlock): void {
    const names = [...text.matchAll(/^export (\w+)=/gm)].map(([, name]) => name!);
    const missing = names.filter((name) => this.settings[name] === undefined);
    if (missing.length > 0) throw new Error(`line ${line}: the test has no value for ${missing.join(', ')}`);
  }

  private async run(block: CodeBlock): Promise<void> {
    const { line, text } = block;
    this.last = block;
    const number = ++this.blocks;
    const script = join(this.folder, `.block-${number}.sh`);
    writeFileSync(script, text);
    this.seen = this.output.length;
    const end = `[block ${number} is done]`;
    this.shell.stdin!.write(`source '${script}' < /dev/null\necho '${end}'\n`);
    const done = await this.wait(BLOCK_MS, () => this.output.includes(end) || this.shell.exitCode !== null);
    if (!this.output.includes(end))
      throw new Error(`the block in line ${line} ${done ? 'failed' : 'did not end'}:\n${text}\n${this.since()}`);
  }

  /** Compares with the output since the last block began: its background processes print later. */
  private async expect({ line, text }: CodeBlock): Promise<void> {
    const pattern = outputPattern(text);
    const isThere = (): boolean => pattern.test(`${outputLines(this.since()).join('\n')}\n`);
    const repeats = this.last !== undefined && onlyReads(this.last);
    for (const end = Date.now() + OUTPUT_MS; Date.now() < end;) {
      if (await this.wait(repeats ? 1000 : OUTPUT_MS, isThere)) return;
      if (repeats) await this.run(this.last!);
    }
    throw new Error(`the output in line ${line} did not appear:\n${text}\nbut:\n${this.since()}`);
  }

  private readonly since = (): string => this.output.slice(this.seen).replace(/\[block \d+ is done\]/g, '\n');

  private async wait(ms: number, isDone: () => boolean): Promise<boolean> {
    for (const end = Date.now() + ms; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 50))) if (isDone()) return true;
    return isDone();
  }
}
