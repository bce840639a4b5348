/**
 * Compares the stored events of each emitter with the expected ones.
 * @param {import('../../../dist/libs/database/src/index.js').Database} database
 * @param {import('./producer.mjs').Emitter[]} expected
 */
export async function compareWithStore(database, expected) {
  const { rows } = await database.query(
    `SELECT emitter_id, array_agg((convert_from(event, 'UTF8')::json->>'number')::int ORDER BY ms, seq) AS numbers, max(total) AS total
     FROM (SELECT emitter_id, event, ms, seq, row_number() OVER newest AS nth, count(*) OVER (PARTITION BY emitter_id) AS total
           FROM event WINDOW newest AS (PARTITION BY emitter_id ORDER BY ms DESC, seq DESC)) AS numbered
     WHERE nth <= 100 GROUP BY emitter_id`,
  );
  const shown = new Map(rows.map((row) => [row.emitter_id, row.numbers]));
  const found = {
    lost: 0,
    doubled: 0,
    disordered: 0,
    wrongDeletions: 0,
    shown: 0,
    rows: rows.reduce((sum, row) => sum + Number(row.total), 0),
  };
  for (const { id, kept, deleted } of expected) {
    /** @type {number[]} */
    const numbers = shown.get(id) ?? [];
    const there = new Set(numbers);
    const wanted = new Set(kept);
    found.shown += numbers.length;
    found.doubled += numbers.length - there.size;
    found.disordered += numbers.filter((number, index) => index > 0 && number < numbers[index - 1]).length;
    found.lost += kept.filter((number) => !there.has(number)).length;
    const tooMuch = [...there].filter((number) => !wanted.has(number));
    // not deleted although it should be, or visible again although it is beyond the last 100
    found.wrongDeletions += tooMuch.length;
    if (tooMuch.length > 0 || kept.some((number) => !there.has(number))) {
      console.log(`${id}: expected ${kept}, shown ${numbers}; deleted of these: ${tooMuch.filter((number) => deleted.has(number))}`);
    }
  }
  return found;
}
