import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { comparePlaces } from '#events';
import { deliveryIdOf, placeOfDelivery } from './delivery-id.js';

const place = fc.record({ ms: fc.nat({ max: 99_999_999_999_999 }), seq: fc.maxSafeNat() });

describe("a delivery's id", () => {
  it('stands for the place of its event', () => {
    fc.assert(fc.property(place, (each) => expect(placeOfDelivery(deliveryIdOf(each))).toEqual(each)));
  });

  it('sorts as its event does', () => {
    fc.assert(
      fc.property(place, place, (a, b) =>
        expect(Math.sign(comparePlaces(a, b))).toBe(deliveryIdOf(a) < deliveryIdOf(b) ? -1 : deliveryIdOf(a) > deliveryIdOf(b) ? 1 : 0),
      ),
    );
  });

  it.each(['', 'del_', 'del_1', 'wh_000000000000000000', 'del_00000000000000000', 'del_zzzzzzzzzzzzzzzzzz', 'del_0000000000000000-0'])(
    'is not %j',
    (id) => {
      expect(placeOfDelivery(id)).toBeNull();
    },
  );
});
