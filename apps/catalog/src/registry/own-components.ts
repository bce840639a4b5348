import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { LOG, type Log } from '#observability';
import { RegistryService } from './registry.service.js';

/** `components/` of the repository, relative to `dist/apps/catalog/src/registry`. */
const FOLDER = fileURLToPath(new URL('../../../../../components', import.meta.url));
const TRY_FOR_MS = 20_000;
const PAUSE_MS = 500;

/** Registers the components that ship with Sluice, so that a new account can create a source at once. */
@Injectable()
export class OwnComponents implements OnApplicationBootstrap {
  constructor(
    private readonly registry: RegistryService,
    @Inject(LOG) private readonly log: Log,
  ) {}

  /** How long to wait for the runtime, which inspects new code and may be starting, too. */
  async onApplicationBootstrap(): Promise<void> {
    if (!existsSync(FOLDER)) return this.log.warn({ folder: FOLDER }, 'registry.no-own-components');
    const deadline = Date.now() + TRY_FOR_MS;
    for (;;) {
      try {
        const registered = await this.registry.add(FOLDER);
        return this.log.info({ keys: registered.map(({ key }) => key) }, 'registry.filled');
      } catch (error) {
        if (Date.now() > deadline) return this.log.error({ err: error }, 'registry.not-filled');
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    }
  }
}
