/**
 * SHA-256 (FIPS 180-4). The core may not import `node:crypto`, and WebCrypto runs on another thread, which would make a simulated
 * run irreproducible. Used for ids and fingerprints, not for secrets.
 */
export function sha256Hex(text: string): string {
  const message = new TextEncoder().encode(text)
  const padded = new Uint8Array((((message.length + 8) >> 6) + 1) << 6)
  padded.set(message)
  padded[message.length] = 0x80
  const view = new DataView(padded.buffer)
  view.setUint32(padded.length - 8, Math.floor(message.length / 0x20000000))
  view.setUint32(padded.length - 4, (message.length << 3) >>> 0)

  const hash = Uint32Array.from(initial)
  const w = new Uint32Array(64)
  for (let offset = 0; offset < padded.length; offset += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getUint32(offset + i * 4)
    for (let i = 16; i < 64; i++) {
      const a = at(w, i - 15)
      const b = at(w, i - 2)
      w[i] =
        at(w, i - 16) +
        (rotate(a, 7) ^ rotate(a, 18) ^ (a >>> 3)) +
        at(w, i - 7) +
        (rotate(b, 17) ^ rotate(b, 19) ^ (b >>> 10))
    }
    let [a, b, c, d, e, f, g, h] = hash as unknown as [number, number, number, number, number, number, number, number]
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + at(constants, i) + at(w, i)) | 0
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
      h = g
      g = f
      f = e
      e = (d + t1) | 0
      d = c
      c = b
      b = a
      a = (t1 + t2) | 0
    }
    for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) hash[i] = at(hash, i) + word
  }
  return Array.from(hash, (word) => word.toString(16).padStart(8, '0')).join('')
}

function at(words: Uint32Array, i: number): number {
  return words[i] as number
}

function rotate(word: number, by: number): number {
  return (word >>> by) | (word << (32 - by))
}

// The first 32 bits of the fractional parts of the square roots of the first 8 primes, and of the cube roots of the first 64.
const primes = firstPrimes(64)
const initial = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)))
const constants = Uint32Array.from(primes, (prime) => fraction(Math.cbrt(prime)))

function fraction(root: number): number {
  return Math.floor((root - Math.floor(root)) * 0x100000000)
}

function firstPrimes(count: number): number[] {
  const found: number[] = []
  for (let candidate = 2; found.length < count; candidate++) {
    if (found.every((prime) => candidate % prime !== 0)) found.push(candidate)
  }
  return found
}
