import { expect, it } from '@jest/globals';
import * as contracts from './index.js';

it('commands with the URL of code are encrypted in Kafka, because it may contain a password', () => {
  const { CodeSource } = contracts;
  const commands = Object.values(contracts).flatMap((each) =>
    typeof each === 'object' && 'payload' in each && each.payload.prototype instanceof CodeSource ? [each] : [],
  );
  expect(commands.length).toBeGreaterThan(3);
  expect(commands.filter((each) => !('secret' in each && each.secret)).map(({ name }) => name)).toEqual([]);
});
