import { Injectable } from '@nestjs/common';
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { inspectComponent, Invalid, NotFound } from '#contracts';
import { Messages } from '#messaging';
import { codeHash, inspectedCode } from '../components/component.entity.js';
import { ComponentsRepository } from '../components/components.repository.js';
import { type RegisteredComponent, RegistryRepository } from './registry.repository.js';

const CODE_FILE = /\.(?:m?js|cjs|ts|mts)$/;
const INSPECT_TIMEOUT_MS = 15_000;

/** Fills the registry from files. */
@Injectable()
export class RegistryService {
  constructor(
    private readonly registry: RegistryRepository,
    private readonly components: ComponentsRepository,
    private readonly messages: Messages,
  ) {}

  list(): Promise<RegisteredComponent[]> {
    return this.registry.list();
  }

  /** Registers a file, or each code file of a folder. Throws Invalid, naming the first file that is not a component with a key. */
  async add(path: string): Promise<RegisteredComponent[]> {
    const isFolder = await stat(path).then(
      (found) => found.isDirectory(),
      () => {
        throw new NotFound('file or folder', path);
      },
    );
    const files = isFolder
      ? (await readdir(path))
          .filter((name) => CODE_FILE.test(name))
          .sort()
          .map((name) => join(path, name))
      : [path];
    if (files.length === 0) throw new Invalid(`no component found in ${path}`);
    const keys = new Set<string>();
    for (const file of files) keys.add(await this.addFile(file));
    return (await this.registry.list()).filter(({ key }) => keys.has(key));
  }

  async remove(key: string): Promise<void> {
    if (!(await this.registry.remove(key))) throw new NotFound('registered component', key);
  }

  private async addFile(file: string): Promise<string> {
    const code = await readFile(file, 'utf8');
    const hash = codeHash(code);
    const inspect = () => this.messages.request(inspectComponent, { code }, { key: hash, timeoutMs: INSPECT_TIMEOUT_MS });
    const known =
      (await this.components.findCode(hash)) ??
      inspectedCode(
        code,
        await inspect().catch((error: Error) => {
          throw error.name === 'SluiceError' ? new Invalid(`${basename(file)}: ${error.message}`) : error;
        }),
      );
    const { key } = known.description;
    if (key === null) throw new Invalid(`${basename(file)}: a registered component must have a key`);
    await this.registry.register(key, known, file);
    return key;
  }
}
