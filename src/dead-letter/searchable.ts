import type { DeadLetter } from './letter.ts'

/** The searched fields of a failure and of each of its causes. The stack is excluded: it contains too many words. */
export const searchedOfFailure = ['errorType', 'code', 'message'] as const
export const searchedOfCause = ['errorType', 'message'] as const

/** The texts of a letter that `LetterFilter.text` searches, each separately. */
export function searchedTexts({ lane, event, attempts }: Pick<DeadLetter, 'lane' | 'event' | 'attempts'>): string[] {
  const texts: (string | null)[] = [lane, event.id, event.type]
  for (const { failure } of attempts) {
    texts.push(...searchedOfFailure.map((field) => failure[field]))
    for (const cause of failure.causes) texts.push(...searchedOfCause.map((field) => cause[field]))
  }
  return texts.filter((text) => text !== null)
}

/** Whether a letter contains a text. Only the case of ASCII letters is ignored, because all databases support that. */
export function hasText(letter: Pick<DeadLetter, 'lane' | 'event' | 'attempts'>, text: string): boolean {
  const wanted = lowerAscii(text)
  return searchedTexts(letter).some((one) => lowerAscii(one).includes(wanted))
}

function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
