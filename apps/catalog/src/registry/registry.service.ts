import { isUtf8 } from 'node:buffer';
import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { type BeforeApplicationShutdown, Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { Invalid, NotFound } from '#contracts';
import { Messages } from '#messaging';
import { LOG, type Log } from '#observability';
import { codeHash } from '../components/component.entity.js';
import { ComponentsRepository } from '../components/components.repository.js';
import { inspectCode } from '../components/inspect-code.js';
import { type RegisteredComponent, RegistryRepository } from './registry.repository.js';

const CODE_FILE = /\.(?:m?js|cjs|ts|mts)$/;

/** Fills the registry from files. */
@Injectable()
export class RegistryService {
  constructor(
    private readonly registry: RegistryRepository,
    private readonly components: ComponentsRepository,
    @Inject(Messages) private readonly messages: Pick<Messages, 'request'>,
  ) {}

  list(): Promise<RegisteredComponent[]> {
    return this.registry.list();
  }

  /**
   * Registers a file, or each code file of a folder. Throws Invalid, naming the first file that is not a component with a key.
   *
   * @param shipped they ship with Sluice: what the operator has removed, or registered in their place, stays as it is
   */
  async add(path: string, { shipped = false } = {}): Promise<RegisteredComponent[]> {
    const files = (await stat(path)).isDirectory()
      ? (await readdir(path))
          .filter((name) => CODE_FILE.test(name))
          .sort()
          .map((name) => join(path, name))
      : [path];
    if (files.length === 0) throw new Invalid(`no component found in ${path}`);
    const keys = new Set<string>();
    for (const file of files) keys.add(await this.addFile(file, shipped));
    return (await this.registry.list()).filter(({ key }) => keys.has(key));
  }

  async remove(key: string): Promise<void> {
    if (!(await this.registry.remove(key))) throw new NotFound('registered component', key);
  }

  private async addFile(file: string, shipped: boolean): Promise<string> {
    const bytes = await readFile(file);
    if (!isUtf8(bytes)) throw new Invalid(`${basename(file)} is not UTF-8`);
    if (bytes.includes(0)) throw new Invalid(`${basename(file)} has a NUL character`);
    const code = bytes.toString('utf8');
    const known =
      (await this.components.findCode(codeHash(code))) ??
      (await inspectCode(this.messages, code).catch((error: Error) => {
        throw error.name === 'SluiceError' ? new Invalid(`${basename(file)}: ${error.message}`) : error;
      }));
    const { key } = known.description;
    if (key === null) throw new Invalid(`${basename(file)}: a registered component must have a key`);
    await this.registry.register(key, known, file, shipped);
    return key;
  }
}

/** `components/` of the repository, beside its `package.json`. */
const FOLDER = join(dirname(findPackageJSON(import.meta.url) ?? '.'), 'components');
/** How long the first start waits for the runtime, which inspects new code and may be starting, too. It is also when a failure is reported. */
const TRY_FOR_MS = 20_000;
const PAUSE_MS = 500;
const LONG_PAUSE_MS = 10_000;

/** Registers the components that ship with Sluice: in a new installation before the catalog is ready, so that its account can create a source at once. */
@Injectable()
export class OwnComponents implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private stopping = false;

  constructor(
    private readonly registry: RegistryService,
    @Inject(LOG) private readonly log: Log,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    if (!existsSync(FOLDER)) return this.log.warn({ folder: FOLDER }, 'registry.no-own-components');
    // a failure is that of the first attempt to fill it, too, which is repeated
    const isNew = await this.registry.list().then(
      ({ length }) => length === 0,
      () => false,
    );
    const filled = this.fill();
    // later, sources and requests would wait, too
    if (isNew) await Promise.race([filled, pause(TRY_FOR_MS)]);
  }

  beforeApplicationShutdown(): void {
    this.stopping = true;
  }

  private async fill(): Promise<void> {
    const deadline = performance.now() + TRY_FOR_MS;
    let isLate = false;
    while (!this.stopping) {
      try {
        const registered = await this.registry.add(FOLDER, { shipped: true });
        return this.log.info({ keys: registered.map(({ key }) => key) }, 'registry.filled');
      } catch (error) {
        const isFirst = !isLate;
        isLate = performance.now() > deadline;
        if (isLate && isFirst && !this.stopping) this.log.error({ err: error }, 'registry.not-filled');
        await pause(isLate ? LONG_PAUSE_MS : PAUSE_MS);
      }
    }
  }
}

/** Does not keep the process from ending. */
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms).unref());
