import type { Bug } from '../bug.ts'

/** What is thrown, what is shown of it, and what the door of the log lets in. */
export const failureBugs: readonly Bug[] = [
  {
    name: 'thrown-thing-throws-again',
    tells:
      'An error whose getter throws takes the engine with it, on the way to the letter that should hold the event.',
    file: 'src/failure/peek.ts',
    find: `  try {
    return (value as Record<PropertyKey, unknown> | null | undefined)?.[name]
  } catch {
    return undefined
  }`,
    replace: `  return (value as Record<PropertyKey, unknown> | null | undefined)?.[name]`,
    suite: ['src/failure/failure.test.ts'],
  },
  {
    name: 'failure-that-can-not-be-stored',
    tells: 'A message with a zero in it can not be written by PostgreSQL, and its partition stands still for ever.',
    file: 'src/failure/peek.ts',
    find: `  return value.toWellFormed().replaceAll('\\0', '\\uFFFD')`,
    replace: `  return value.toWellFormed()`,
    suite: ['test/attacks/storable.test.ts'],
  },
  {
    name: 'fingerprint-of-every-event',
    tells: 'A thousand letters of one bug are a thousand incidents, and nobody sees that they are one.',
    file: 'src/failure/failure.ts',
    find: `    out += digits ? '#' : word`,
    replace: `    out += word`,
    suite: ['src/failure/failure.test.ts'],
  },
  {
    name: 'incident-never-comes-back',
    tells: 'A bug that was fixed and is back looks like one that was never fixed.',
    file: 'src/dead-letter/incident.ts',
    find: `heldSince > lastEnded ? 'regressed' : 'open'`,
    replace: `heldSince < 0 ? 'regressed' : 'open'`,
    suite: ['src/sqlite/contract.test.ts'],
  },
  {
    name: 'payload-shown-in-a-message',
    tells: 'Whoever may look at failures but not at payloads reads the payload in the message.',
    file: 'src/dead-letter/redact.ts',
    find: `    const isAll = hideValues(haystack, payload, mostText)`,
    replace: `    const isAll = hideValues(haystack, undefined, mostText)`,
    suite: ['src/dead-letter/redact.test.ts'],
  },
  {
    name: 'schema-that-answers-late-not-waited-for',
    tells: 'Events that their schema refuses are in the log for ever, if it takes a moment to say so.',
    file: 'src/log/log.ts',
    find: `        if (pending.length > 0) await Promise.all(pending)`,
    replace: `        void Promise.allSettled(pending)`,
    suite: ['src/log/door.test.ts'],
  },
  {
    name: 'number-rounded-on-its-way-in',
    tells: 'A number beyond 2^53 that was given as text is another one in the log.',
    file: 'src/log/admit.ts',
    find: `        : checkJsonText(draft.json, \`\${path}.json\`, dataLimits)`,
    replace: `        : encodeJson(JSON.parse(draft.json), \`\${path}.json\`, dataLimits)`,
    suite: ['src/log/log.test.ts'],
  },
  {
    name: 'lane-of-every-event',
    tells: 'A handler that keeps the order of its keys has none: what fails holds up nothing behind it.',
    file: 'src/handler/handler.ts',
    find: `  return order === 'none' ? \`\${key}#\${position}\` : key`,
    replace: `  return order !== 'partition' ? \`\${key}#\${position}\` : key`,
    suite: ['test/engine/handler.test.ts'],
  },
  {
    name: 'row-written-though-it-can-not-be-read',
    tells: 'A fold that returns a promise or a date writes a row that nobody gets back as it was.',
    file: 'src/projection/fold.ts',
    find: `    negativeZero = sealState(after, 'row').negativeZero
    for`,
    replace: `    negativeZero = false
    for`,
    suite: ['src/projection/fold.test.ts'],
  },
]
