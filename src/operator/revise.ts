import type { DeadLetter } from '../dead-letter/letter.ts'
import type { LetterName, ReviseOutcome } from '../dead-letter/letter-store.ts'
import { recordOf } from '../subscription/interpret.ts'
import { HoldfastError, InvalidEventError } from '../errors.ts'
import { readData } from '../event/catalog.ts'
import { diffJson, type JsonChange } from '../event/diff.ts'
import { parseBody, type RecordedEvent } from '../event/event.ts'
import { checkJsonText, dataLimits, encodeJson } from '../event/json.ts'
import { isA } from '../failure/peek.ts'
import { refuseBeside } from '../rebuild/live.ts'
import { checkOptions } from '../runtime/options.ts'
import { letterBusy } from './busy.ts'
import { findLetter, titleOf } from './letters.ts'
import type { OperatorParts } from './parts.ts'

/** `data`, or `json` with the exact text (for example for numbers beyond 2^53). */
export type RevisionInput =
  | { readonly data: unknown; readonly json?: never }
  | { readonly json: string; readonly data?: never }

export interface Revised {
  readonly number: number
  /** The changes from the previous data to the new data. */
  readonly changes: readonly JsonChange[]
}

interface Prepared {
  readonly letter: DeadLetter
  readonly body: string
  readonly changes: readonly JsonChange[]
}

export async function revise(
  parts: OperatorParts,
  name: LetterName,
  input: RevisionInput,
  reason: string,
): Promise<Revised> {
  const deed = { reason: parts.reasonOf(reason), act: 'letter.revise' }
  const { letter, body, changes } = await prepareRevision(parts, name, input)
  const details = { partition: letter.partition, changes: changes.length }
  const outcome = await parts.store.letters.revise(
    exactly(letter),
    body,
    parts.deed({ ...deed, ...about(letter, details) }),
  )
  return { number: await numberOf(parts, outcome, letter), changes }
}

/** Checks the input. Writes nothing. */
export async function prepareRevision(parts: OperatorParts, name: LetterName, input: RevisionInput): Promise<Prepared> {
  checkOptions(input, 'A revision', ['data', 'json'])
  if ('data' in input === 'json' in input)
    throw new HoldfastError('OPTION_INVALID', 'A revision needs data or json, and only one of them.')
  refuseBeside(name.subscription)
  const letter = await findLetter(parts.store, name)
  if (letter.endedAt !== undefined) throw ended(letter)
  const body =
    'json' in input ? checkJsonText(input.json, 'json', dataLimits) : encodeJson(input.data, 'data', dataLimits)
  await checkSchema(parts, letter, body)
  return { letter, body, changes: changesOf(recordOf(letter).body, body) }
}

/** Validates as the engine will: with upcasts from the schema version of the letter. */
async function checkSchema(parts: OperatorParts, { subscription, event }: DeadLetter, body: string): Promise<void> {
  const entry = parts.subscriptionOf(subscription).consumer.events.entry(event.type)
  if (!entry) {
    throw new HoldfastError('EVENT_TYPE_UNKNOWN', `The catalog has no type ${JSON.stringify(event.type)}.`, {
      hint: 'Add it to defineEvents: a revision needs its schema.',
    })
  }
  try {
    await readData(entry, event.schemaVersion, parseBody(body))
  } catch (cause) {
    if (isA(cause, HoldfastError)) throw cause
    throw new InvalidEventError('EVENT_SCHEMA', 'data', `The schema of ${event.type} threw.`, { cause })
  }
}

/** If the previous body is not valid JSON, all values count as new. */
function changesOf(before: RecordedEvent['body'], after: string): JsonChange[] {
  let known: unknown
  try {
    known = parseBody(before)
  } catch {
    known = undefined
  }
  return diffJson(known, parseBody(after))
}

export async function unrevise(parts: OperatorParts, name: LetterName, reason: string): Promise<Revised> {
  const deed = { reason: parts.reasonOf(reason), act: 'letter.unrevise' }
  const { letters } = parts.store
  refuseBeside(name.subscription)
  const letter = await findLetter(parts.store, name)
  const details = { partition: letter.partition, revision: letter.revision?.number ?? null }
  const outcome = await letters.unrevise(exactly(letter), parts.deed({ ...deed, ...about(letter, details) }))
  const number = await numberOf(parts, outcome, letter)
  const after = recordOf(await findLetter(parts.store, exactly(letter))).body
  // The body is text, or bytes if the original event was not valid JSON.
  const changes = typeof after === 'string' && isJson(after) ? changesOf(recordOf(letter).body, after) : []
  return { number, changes }
}

function isJson(text: string): boolean {
  try {
    parseBody(text)
    return true
  } catch {
    return false
  }
}

function exactly({ subscription, partition, event }: DeadLetter): LetterName {
  return { subscription, partition, position: event.position }
}

function about(
  { subscription, event }: DeadLetter,
  details: Readonly<Record<string, string | number | boolean | null>>,
): { target: string; details: typeof details } {
  return { target: `${subscription}/${event.position}`, details }
}

async function numberOf(parts: OperatorParts, outcome: ReviseOutcome, letter: DeadLetter): Promise<number> {
  switch (outcome.outcome) {
    case 'revised':
      return outcome.number
    case 'unknown':
      throw new HoldfastError('LETTER_UNKNOWN', `${titleOf(letter)} does not exist any more.`)
    case 'ended':
      throw ended(letter)
    case 'busy':
      throw await letterBusy(parts, letter)
    case 'unrevised':
      throw new HoldfastError('REVISION_NONE', `${titleOf(letter)} has no edit to undo.`)
    default:
      return outcome satisfies never
  }
}

export function ended(letter: DeadLetter): HoldfastError {
  const { status, endedBy } = letter
  const by = endedBy === undefined ? '' : ` by ${endedBy}`
  return new HoldfastError('LETTER_ENDED', `${titleOf(letter)} was already ${status}${by}.`, {
    hint: 'Only a held letter can be changed.',
  })
}
