import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { HttpAppForTests, KEY, ME, SOURCE } from '../http-app-for-tests.js';

const http = new HttpAppForTests();
beforeEach(async () => {
  http.reset();
  await http.start();
});
afterEach(() => http.close());

describe('the pace of an account', () => {
  it.each<['GET' | 'HEAD' | 'PATCH' | 'DELETE' | 'POST', string, number]>([
    ['GET', `/v1/sources/${SOURCE}`, 1],
    ['HEAD', `/v1/sources/${SOURCE}`, 1],
    ['PATCH', `/v1/sources/${SOURCE}`, 3],
    ['DELETE', `/v1/sources/${SOURCE}`, 3],
    ['POST', '/v1/sources', 3],
    ['POST', `/v1/sources/${SOURCE}/events`, 1],
  ])('charges a request %s %s %d units, without its body', async (method, url, units) => {
    await http.app.inject({ method, url, headers: KEY });
    expect(http.turns).toEqual([[ME, units]]);
  });
});
