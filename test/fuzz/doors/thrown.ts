import { classify } from '../../../src/failure/classify.ts'
import { describeFailure, type Failure, failureClasses } from '../../../src/failure/failure.ts'
import { redactFailure } from '../../../src/dead-letter/redact.ts'
import { foldStack } from '../../../src/dead-letter/stack.ts'
import { type Door, expectThat } from '../door.ts'
import { jsonValue } from '../generate/json.ts'
import { anyThrown } from '../generate/thrown.ts'
import { anyValue } from '../generate/value.ts'
import { createChance } from '../chance.ts'

// 256 errors at the most, and of each no more than a few dozen fields; a message, a stack, and eight causes.
const mostReads = 256 * 64
const mostCharacters = 4_096 * 9 + 16_384 + 4_096

/** Whatever a handler throws is classified and described, the same way every time, and in no more than so many steps. */
export const thrownDoor: Door = {
  name: 'thrown',
  outcomes: ['accepted'],
  cases: 1_000,
  open: async () => ({
    give: async (chance) => {
      // The same value again, as what is given may not be the same twice when it is asked twice.
      const seed = chance.below(2 ** 32)
      const [first, second] = [judged(seed), judged(seed)]
      expectThat(first === second, 'it was judged differently the second time', [first, second])
      return 'accepted'
    },
    [Symbol.asyncDispose]: async () => undefined,
  }),
}

function judged(seed: number): string {
  const chance = createChance(seed)
  const steps = { reads: 0 }
  const thrown = chance.percent(30) ? counting(anyThrown(chance), steps) : anyThrown(chance)
  const rules = chance.some(2, () => () => anyValue(createChance(seed)) as never)
  const classified = classify(thrown, rules, 0)
  expectThat(failureClasses.includes(classified.class), 'it has no class', classified)
  const failure = describeFailure(thrown, classified.class, classified.rule, classified.evidence)
  expectThat(steps.reads <= mostReads, 'it took too many steps', steps)
  for (const text of textsOf(failure)) expectThat(text.isWellFormed(), 'it has half a character', failure)
  expectThat(JSON.stringify(failure).length <= mostCharacters * 6, 'it is too long', failure)
  const isKept = JSON.stringify(JSON.parse(JSON.stringify(failure))) === JSON.stringify(failure)
  expectThat(isKept, 'it does not come back as it was written', failure)
  foldStack(redactFailure(failure, jsonValue(chance)))
  return JSON.stringify([classified, { ...failure, stack: null }])
}

function textsOf({ message, errorType, code, evidence, stack, causes, fingerprint, rule }: Failure): string[] {
  const texts = [message, errorType, code, evidence, stack, fingerprint, rule]
  return [...texts.filter((text) => typeof text === 'string'), ...causes.flatMap((cause) => Object.values(cause))]
}

function isLong(value: object): boolean {
  try {
    return Array.isArray(value) && value.length > mostReads / 4
  } catch {
    return false
  }
}

/** Counts how often anything of it is looked at, however deep. */
function counting(value: unknown, steps: { reads: number }): unknown {
  // As a text, a list is looked at item by item; so would be all that is not in one that is only long.
  if (typeof value !== 'object' || value === null || isLong(value)) return value
  return new Proxy(value, {
    get: (target, name) => {
      steps.reads++
      const descriptor = Reflect.getOwnPropertyDescriptor(target, name)
      const found: unknown = Reflect.get(target, name)
      // What can't be changed must be given as it is.
      return descriptor && !descriptor.configurable && !descriptor.writable ? found : counting(found, steps)
    },
  })
}
