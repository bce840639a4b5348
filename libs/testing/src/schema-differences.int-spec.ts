import { expect, it } from '@jest/globals';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { BYTEWISE_TEXT, Migration, schemaOf } from '#database';
import { schemaDifferences } from './fresh-database.js';

@Entity('thing')
@Index('thing_by_name', ['name'])
class Thing {
  @PrimaryColumn(BYTEWISE_TEXT)
  id!: string;

  @Column('text')
  name!: string;
}

const differencesFrom = (statement: string): Promise<string[]> => {
  class CreateThing1000000000001 extends Migration {
    readonly sql = statement;
  }
  return schemaDifferences(schemaOf('differences', { entities: [Thing], migrations: [CreateThing1000000000001] }));
};
const INDEX = 'CREATE INDEX thing_by_name ON thing (name)';

it('finds nothing where entities and migrations agree', async () => {
  expect(await differencesFrom(`CREATE TABLE thing (id text COLLATE "C" PRIMARY KEY, name text NOT NULL); ${INDEX}`)).toEqual([]);
});

it.each([
  ['a nullable column', `CREATE TABLE thing (id text COLLATE "C" PRIMARY KEY, name text); ${INDEX}`, /"name" SET NOT NULL/],
  ['a collation', `CREATE TABLE thing (id text PRIMARY KEY, name text NOT NULL); ${INDEX}`, /"id".* COLLATE "C"/],
  ['a missing index', 'CREATE TABLE thing (id text COLLATE "C" PRIMARY KEY, name text NOT NULL)', /CREATE INDEX "thing_by_name"/],
  ['a missing column', `CREATE TABLE thing (id text COLLATE "C" PRIMARY KEY)`, /ADD "name" text/],
  [
    'a table without an entity',
    `CREATE TABLE thing (id text COLLATE "C" PRIMARY KEY, name text NOT NULL); ${INDEX}; CREATE TABLE other (id int)`,
    /table other has no entity/,
  ],
])('reports %s', async (_, statement, difference) => {
  expect((await differencesFrom(statement)).join('\n')).toMatch(difference);
});
