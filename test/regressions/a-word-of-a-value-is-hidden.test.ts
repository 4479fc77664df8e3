import { describe, expect, it } from 'vitest'
import { redact, redactFailure } from '../../src/dead-letter/redact.ts'
import { describeFailure } from '../../src/failure/failure.ts'

// The main word of a value was shown where it stood alone: `lovelace` of `lovelace@example.com`.

describe('a message does not show', () => {
  it.for([
    ['lovelace@example.com', 'no mailbox lovelace', 'no mailbox ***'],
    ['lovelace@example.com', 'no mailbox user_lovelace', 'no mailbox user_***'],
    ['Lovelace-Byron', 'user Lovelace refused', 'user *** refused'],
    ['Lovelace-Byron', 'user BYRON refused', 'user *** refused'],
    ['Smith/Jones', 'user smith, not Smithers', 'user ***, not Smithers'],
    ['supersecret!', 'bad password "supersecret"', 'bad password "***"'],
    ['"Lovelace"', 'user Lovelace', 'user ***'],
    ['@lovelace', 'user Lovelace', 'user ***'],
    ['#diabetes', 'tag diabetes unknown', 'tag *** unknown'],
    ['smith42', 'user smith', 'user ***'],
    ['https://x.example/users/lovelace', 'https: user lovelace', 'https: user ***'],
    ['the patient reports severe diabetes and takes insulin', 'bad diagnosis: diabetes', 'bad diagnosis: ***'],
    ['2026-03-04 call Lovelace/Byron, card 4929123456789013', '4929 1234 5678 is not of byron', '*** is not of ***'],
    ['zq 0 a b 0z', 'zq 0 a b 0zError', '***Error'],
  ] as const)('a word of %j in %j', ([value, message, shown]) => {
    expect(redact(message, { value })).toBe(shown)
  })

  it.for([
    ['张伟', '用户张伟不存在', '用户***不存在'],
    ['王小明先生', '用户王小明不存在', '用户***不存在'],
    ['田中太郎', 'ユーザー田中が見つかりません', 'ユーザー***が見つかりません'],
    ['김철수', '사용자김철수를', '사용자***를'],
    ['สมชาย', 'ไม่พบสมชายในระบบ', 'ไม่พบ***ในระบบ'],
    ['Name: 张伟 (VIP)', '用户张伟不存在', '用户***不存在'],
  ] as const)('%j, in a script without spaces, in %j', ([value, message, shown]) => {
    expect(redact(message, { value })).toBe(shown)
  })

  it('a value that is also a key of the payload', () => {
    expect(redact('condition diabetes', { diabetes: false, condition: 'diabetes' })).toBe('condition ***')
  })

  it('such a word in the name or the code of an error', () => {
    const error = Object.assign(new Error('no'), { name: 'LovelaceError', code: 'E_LOVELACE' })
    const shown = redactFailure(describeFailure(error, 'permanent', 'x'), { name: 'Lovelace-Byron' })
    expect(shown).toMatchObject({ errorType: '***Error', code: 'E_***' })
  })
})

describe('a message shows', () => {
  it.for([
    ['sku 1 of 17 customers', { sku: 'sku-1', customer: 'customer-17' }],
    ['no such table: revenue_by_monthly', { period: 'monthly' }],
    ['column "customer_email" of relation "customers" does not exist', { type: 'customer' }],
    ['column "customer_email" of relation "customers" does not exist', { id: 'customer-17' }],
    ['null value in column "customer" of table addresses', { customer: 'customer-17', kind: 'address' }],
    ['invalid value for order', { id: 'order-17', note: 'a value that was invalid came with the last order' }],
  ] as const)('the names of the schema: %s', ([message, payload]) => {
    expect(redact(message, payload)).toBe(message)
  })

  it('the folders of a stack, if a longer text has such a word', () => {
    const frame = 'at run (/srv/templates/mail.ts:1:1)'
    const error = { name: 'Error', message: 'no', stack: `Error: no\n    ${frame}` }
    const payload = { note: 'please look at all the templates of this week' }
    expect(redactFailure(describeFailure(error, 'permanent', 'x'), payload).stack).toBe(`    ${frame}`)
  })

  it.for([
    ['period monthly is refused', { period: 'monthly' }, 'period *** is refused'],
    ['xmonthlyx', { period: 'monthly' }, 'x***x'],
    ['revenue_by_pneumothorax', { name: 'pneumothorax' }, 'revenue_by_***'],
    ['backup_of_hopper', { name: 'Hopper' }, 'backup_of_***'],
    ['table lovelace_byron2', { id: 'lovelace_byron2' }, 'table ***'],
    ['table x_sku99x', { id: 'sku99x' }, 'table x_***'],
  ] as const)('no value in them: %s', ([message, payload, shown]) => {
    expect(redact(message, payload)).toBe(shown)
  })
})
