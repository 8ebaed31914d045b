import { Packr } from 'msgpackr'
import { z } from 'zod'
import type { Answer, Question } from './protocol.ts'

/* Questions and answers of protocol.ts between nodes, in msgpack. Only nodes can send them. */

const packr = new Packr({ useRecords: false, moreTypes: false, variableMapSize: true })

const bytes = z.instanceof(Uint8Array)
const questionSchema: z.ZodType<Question> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('permits'), from: z.uuid(), hashes: bytes }),
  z.object({ kind: z.literal('witness'), from: z.uuid(), generation: z.number(), hashes: bytes }),
  z.object({ kind: z.literal('collect'), generation: z.number(), of: z.uuid(), after: z.number() }),
  z.object({
    kind: z.literal('lease'),
    from: z.uuid(),
    instance: z.string(),
    allowance: z.number(),
    freeInMs: z.number(),
  }),
  z.object({ kind: z.literal('bind'), hashes: bytes }),
])
const answerSchema: z.ZodType<Answer> = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('permits'), verdicts: bytes }),
  z.object({ kind: z.literal('witness'), isKept: z.boolean() }),
  z.object({
    kind: z.literal('collect'),
    isComplete: z.boolean(),
    instance: z.string(),
    grants: bytes,
    part: z.number(),
  }),
  z.object({ kind: z.literal('lease'), allowance: z.number(), others: z.number(), freeInMs: z.number() }),
  z.object({ kind: z.literal('bind'), isComplete: z.boolean(), uses: bytes }),
])

export function packQuestion(question: Question): Uint8Array {
  return packr.pack('hashes' in question ? { ...question, hashes: bufferOf(question.hashes) } : question)
}

export function packAnswer(answer: Answer): Uint8Array {
  if (answer.kind === 'permits') return packr.pack({ ...answer, verdicts: bufferOf(answer.verdicts) })
  if (answer.kind === 'bind') return packr.pack({ ...answer, uses: bufferOf(answer.uses) })
  return packr.pack(answer.kind === 'collect' ? { ...answer, grants: bufferOf(answer.grants) } : answer)
}

/** @throws Error if no node can have sent it */
export function unpackQuestion(message: Uint8Array): Question {
  return questionSchema.parse(packr.unpack(message))
}

/** @throws Error if no node can have sent it */
export function unpackAnswer(message: Uint8Array): Answer {
  return answerSchema.parse(packr.unpack(message))
}

/** Other arrays of bytes would be packed element by element. */
function bufferOf(array: Uint8Array): Buffer {
  return Buffer.from(array.buffer, array.byteOffset, array.length)
}
