import { describe, expect, it } from '@jest/globals';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { newId } from './ids.js';
import { CreateSource, PatchSource, UpdateSource } from './sources.js';

const manyConnections = Object.fromEntries(Array.from({ length: 1500 }, (_, n) => [`p${n}`, { authProvisionId: newId('connection') }]));
const [tooLarge, notAnObject] = ['configured_props must be at most 65536 bytes of JSON', 'configured_props must be an object'];

describe.each([CreateSource, UpdateSource, PatchSource])('%p', (contract) => {
  it.each<[string, unknown, string | undefined]>([
    ['absent', undefined, undefined],
    ['empty', {}, undefined],
    ['64 KiB of JSON', { p: 'x'.repeat(65_528) }, undefined],
    ['64 KiB and a byte', { p: 'x'.repeat(65_529) }, tooLarge],
    ['64 KiB and a byte in UTF-8', { p: `${'x'.repeat(65_527)}ä` }, tooLarge],
    ['the ids of very many connections', manyConnections, tooLarge],
    ['a list', [], notAnObject],
    ['a text', 'x', notAnObject],
    ['null', null, contract === PatchSource ? notAnObject : undefined],
  ])('validates configured props: %s', (_, configured_props, problem) => {
    const ids = { id: newId('source'), owner_id: newId('user'), new_component_id: newId('component') };
    const errors = validateSync(plainToInstance<object, object>(contract, { ...ids, configured_props }));
    expect(errors.flatMap(({ constraints }) => Object.values(constraints ?? {}))).toEqual(problem === undefined ? [] : [problem]);
  });
});
