// The table in docs/operations/sizing.md names all tables of PostgreSQL.
import { readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { getMetadataArgsStorage } from 'typeorm';

const DATABASES = ['gateway', 'catalog', 'routing', 'event_store', 'runtime'];
const DOCUMENT = readFileSync(new URL('../docs/operations/sizing.md', import.meta.url), 'utf8');

/** @param {string | undefined} text */
const codesIn = (text) => [...(text ?? '').matchAll(/`(\w+)`/g)].map(([, code]) => code ?? '');

/** Each as `database.table`. */
const documented = () =>
  DOCUMENT.split('\n').flatMap((line) => {
    const [, databases, tables] = line.split('|');
    // another table of the document has symptoms and remedies
    const named = codesIn(databases).filter((name) => DATABASES.includes(name));
    return named.flatMap((database) => codesIn(tables).map((table) => `${database}.${table}`));
  });

/** @param {string} database */
async function tablesOf(database) {
  const { schema } = await import(`../apps/${database.replace('_', '-')}/src/database/schema.js`);
  const tables = getMetadataArgsStorage().tables.filter(({ target }) => schema.entities.includes(target));
  return tables.map(({ name }) => `${database}.${name}`);
}

it('the documentation names each table of each database once, and no other', async () => {
  const tables = (await Promise.all(DATABASES.map(tablesOf))).flat();
  expect(tables.length).toBeGreaterThan(DATABASES.length);
  expect(documented().sort()).toEqual(tables.sort());
});
