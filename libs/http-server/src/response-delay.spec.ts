import { describe, expect, it, jest } from '@jest/globals';
import { GuessDelay, ResponseDelay } from './response-delay.js';

describe('the responses that refuse requests of one client', () => {
  const refuse = (delay: ResponseDelay, times: number, key = 'a', now = 0) => Array.from({ length: times }, () => delay.charge(key, now));

  it('are not delayed up to a hundred, and then each more than the one before, up to a second', () => {
    const waits = refuse(new ResponseDelay(), 400);
    expect(waits.slice(0, 100)).toEqual(Array(100).fill(0));
    expect(waits.slice(100, 103).map(Math.round)).toEqual([10, 20, 30]);
    expect(waits.at(-1)).toBe(1000);
  });

  it('are not delayed at a hundred per second', () => {
    const delay = new ResponseDelay();
    refuse(delay, 100);
    for (let now = 10; now < 5000; now += 10) expect(delay.charge('a', now)).toBeLessThan(1e-6);
  });

  it('are delayed sooner if they cost more', () => {
    const delay = new ResponseDelay();
    const waits = Array.from({ length: 4 }, () => delay.charge('a', 0, 30));
    expect(waits.map(Math.round)).toEqual([0, 0, 0, 200]);
  });

  it('do not delay those of others, and are forgotten after two seconds', () => {
    const delay = new ResponseDelay();
    refuse(delay, 1000);
    expect(delay.charge('b', 0)).toBe(0);
    expect(refuse(delay, 100, 'a', 2000)).toEqual(Array(100).fill(0));
  });
});

describe('the responses to guesses of keys', () => {
  it('are counted together for the addresses of an IPv6 /64', async () => {
    const delay = new GuessDelay();
    const charge = jest.spyOn(delay, 'charge').mockReturnValue(0);
    for (const address of ['2001:db8:1:2::1', '2001:db8:1:2:ffff::1', '2001:db8:1:3::1']) await delay.pass(address, 2);
    const now = expect.any(Number);
    const networks = ['2001:db8:1:2::/64', '2001:db8:1:2::/64', '2001:db8:1:3::/64'];
    expect(charge.mock.calls).toEqual(networks.map((network) => [network, now, 2]));
  });
});
