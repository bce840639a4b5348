import { describe, expect, it } from '@jest/globals';
import { RunnerUsers } from './runner-users.js';

describe('RunnerUsers', () => {
  it('gives each user once', () => {
    const users = new RunnerUsers(4_294_967_294);
    const given = Array.from({ length: 1000 }, () => users.next());
    expect(new Set(given).size).toBe(1000);
    expect(given.every((uid) => uid >= 200_000 && uid < 400_000 && users.gave(uid))).toBe(true);
    expect(users.gave(199_999)).toBe(false);
    expect(users.gave(users.next() + 1)).toBe(false);
  });

  it('stays within what a container maps', () => {
    const users = new RunnerUsers(65_535);
    const given = Array.from({ length: 1000 }, () => users.next());
    expect(given.every((uid) => uid >= 20_000 && uid < 60_000 && users.gave(uid))).toBe(true);
  });
});
