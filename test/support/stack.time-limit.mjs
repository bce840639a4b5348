import { jest } from '@jest/globals';

// From jest.config.js.
jest.setTimeout(globalThis.testTimeLimitMs);
