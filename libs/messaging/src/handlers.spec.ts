import { expect, it } from '@jest/globals';
import { GetSource, getSource, SourceReference } from '#contracts';
import { Handles } from './handlers.js';

it('refuses a handler whose parameter is not the class of the request', () => {
  expect(() => {
    class Narrow {
      @Handles(getSource)
      get(_: SourceReference): void {}
    }
    return Narrow;
  }).toThrow('Narrow.get has to take a GetSource');
  class Exact {
    @Handles(getSource)
    get(_: GetSource): void {}
  }
  expect(new Exact()).toBeDefined();
});
