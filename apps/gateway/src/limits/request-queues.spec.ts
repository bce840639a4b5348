import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Sharing } from './request-queues.js';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

it('an account is alone until another one sends a request, and again some seconds later', () => {
  const sharing = new Sharing();
  sharing.see('u_1');
  sharing.see('u_1');
  expect(sharing.isAlone).toBe(true);
  sharing.see('u_2');
  expect(sharing.isAlone).toBe(false);
  jest.advanceTimersByTime(4000);
  sharing.see('u_1');
  jest.advanceTimersByTime(4000);
  expect(sharing.isAlone).toBe(false);
  sharing.see('u_1');
  jest.advanceTimersByTime(1000);
  expect(sharing.isAlone).toBe(true);
});
