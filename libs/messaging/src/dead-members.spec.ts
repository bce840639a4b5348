import { describe, expect, it } from '@jest/globals';
import { clientIdOf, isDead } from './dead-members.js';

const own = clientIdOf('routing', 100);
const isRunning = (pid: number): boolean => pid === 100 || pid === 101;

describe('a member of a consumer group', () => {
  it.each([
    ['that has the number of this process', own, true],
    ['whose process does not run any more', clientIdOf('routing', 99), true],
    ['whose process runs', clientIdOf('routing', 101), false],
    ['of another service', clientIdOf('runtime', 99), false],
    ['on another machine', 'routing-elsewhere-0123abcd-99', false],
    ['that is another program', `${own.slice(0, own.lastIndexOf('-'))}-x`, false],
    ['without a name', '', false],
  ])('%s: dead is %s', (_, clientId, dead) => {
    expect(isDead(clientId, own, isRunning)).toBe(dead);
  });
});
