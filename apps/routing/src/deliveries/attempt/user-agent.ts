import { readFileSync } from 'node:fs';
import { findPackageJSON } from 'node:module';

const file = findPackageJSON(import.meta.url);
const { version } = JSON.parse(file === undefined ? '{}' : readFileSync(file, 'utf8')) as { version?: string };

/** How we call ourselves at webhooks. */
export const USER_AGENT = `Sluice/${version ?? '0'}`;
