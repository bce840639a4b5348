/** SQL: the streams of the emitter $1, and null, as `named`; for WITH RECURSIVE. Steps from stream to stream, because DISTINCT would read every event. */
export const STREAMS = `
  named (stream) AS (
    (SELECT stream FROM event WHERE emitter_id = $1 ORDER BY stream LIMIT 1)
    UNION ALL
    SELECT (SELECT stream FROM event WHERE emitter_id = $1 AND stream > named.stream ORDER BY stream LIMIT 1) FROM named WHERE named.stream IS NOT NULL
  )`;

/** SQL: the emitters with stored events after this one, in order, and null, as `walk`; for WITH RECURSIVE. It steps, too. */
export const emitterSteps = (emitterId: string): string => `
  walk AS (
    (SELECT emitter_id FROM event WHERE emitter_id > ${emitterId} ORDER BY emitter_id LIMIT 1)
    UNION ALL
    SELECT (SELECT emitter_id FROM event WHERE emitter_id > walk.emitter_id ORDER BY emitter_id LIMIT 1) FROM walk WHERE walk.emitter_id IS NOT NULL
  )`;
