import type { DeadLetter } from './letter.ts'

/** What is searched of a failure, and of each of its causes: what people see of an error. Not its stack, where every word occurs. */
export const searchedOfFailure = ['errorType', 'code', 'message'] as const
export const searchedOfCause = ['errorType', 'message'] as const

/** The texts of a letter in which `LetterFilter.text` is looked for; each by itself. */
export function searchedTexts({ lane, event, attempts }: Pick<DeadLetter, 'lane' | 'event' | 'attempts'>): string[] {
  const texts: (string | null)[] = [lane, event.id, event.type]
  for (const { failure } of attempts) {
    texts.push(...searchedOfFailure.map((field) => failure[field]))
    for (const cause of failure.causes) texts.push(...searchedOfCause.map((field) => cause[field]))
  }
  return texts.filter((text) => text !== null)
}

/** Whether a letter has a text, whatever the case of its ASCII letters: that is what all databases agree on. */
export function hasText(letter: Pick<DeadLetter, 'lane' | 'event' | 'attempts'>, text: string): boolean {
  const wanted = lowerAscii(text)
  return searchedTexts(letter).some((one) => lowerAscii(one).includes(wanted))
}

function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
