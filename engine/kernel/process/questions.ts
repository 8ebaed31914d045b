import { createInterface, type Interface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'

/**
 * The user ended a question with Ctrl-C or Ctrl-D. The program ends as by SIGINT; what it would
 * have done is not done.
 */
export class Canceled extends Error {
  constructor() {
    super('canceled')
    this.name = 'Canceled'
  }
}

/**
 * Whether somebody can answer: questions go to standard error, so standard output may be a pipe.
 */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** The value of an answer, or the line that reports what is wrong with it. */
export type ReadAnswer<T> = (answer: string) => { readonly value: T } | string

interface TextOptions {
  readonly byDefault?: string
  /** What is wrong with an answer; undefined if nothing is. */
  readonly problem?: (answer: string) => string | undefined
}

/** Asks questions on the terminal, one after the other. Lines that are typed ahead are not lost. */
export class Questions {
  readonly #interface: Interface
  readonly #lines: string[] = []
  #waiting: { readonly take: (line: string) => void; readonly cancel: (why: Error) => void } | undefined
  #ended = false

  readonly #output: Writable

  constructor(input: Readable = process.stdin, output: Writable = process.stderr) {
    this.#output = output
    this.#interface = createInterface({ input, output })
    this.#interface.on('line', (line) => this.#receive(line))
    this.#interface.on('SIGINT', () => this.#interface.close())
    this.#interface.on('close', () => {
      this.#ended = true
      this.#waiting?.cancel(new Canceled())
    })
  }

  /**
   * Asks until the answer can be read.
   *
   * @throws Canceled at Ctrl-C and at the end of the input.
   */
  async ask<T>(question: string, read: ReadAnswer<T>): Promise<T> {
    for (;;) {
      const outcome = read((await this.#line(question)).trim())
      if (typeof outcome !== 'string') return outcome.value
      this.#output.write(`${outcome}\n`)
    }
  }

  /** Asks for a line; an empty answer is `byDefault`. */
  text(question: string, { byDefault = '', problem = () => undefined }: TextOptions = {}): Promise<string> {
    return this.ask(`${question}${byDefault === '' ? '' : ` [${byDefault}]`}: `, (given) => {
      const answer = given === '' ? byDefault : given
      if (answer === '') return 'An answer is required'
      return problem(answer) ?? { value: answer }
    })
  }

  /** Asks for some of `choices`, by their numbers or names. */
  choices<T extends string>(question: string, choices: readonly T[]): Promise<T[]> {
    const list = choices.map((choice, index) => `  ${index + 1}  ${choice}\n`).join('')
    this.#output.write(`${question}:\n${list}`)
    return this.ask('Numbers or names, comma-separated: ', (answer) => {
      const words = answer.split(/[\s,]+/).filter((word) => word !== '')
      const chosen = words.map((word) => choices[Number(word) - 1] ?? choices.find((choice) => choice === word))
      const wrong = words.find((_, index) => chosen[index] === undefined)
      if (wrong !== undefined) return `${JSON.stringify(wrong)} is none of them`
      if (words.length === 0) return 'Choose at least one'
      return { value: [...new Set(chosen)] as T[] }
    })
  }

  close(): void {
    this.#interface.close()
  }

  #line(question: string): Promise<string> {
    return new Promise((take, cancel) => {
      // Through the interface, which redraws the line that is being edited.
      this.#interface.setPrompt(question)
      if (!this.#ended) this.#interface.prompt()
      const typedAhead = this.#lines.shift()
      if (typedAhead !== undefined) take(typedAhead)
      else if (this.#ended) cancel(new Canceled())
      else this.#waiting = { take, cancel }
    })
  }

  #receive(line: string): void {
    const waiting = this.#waiting
    this.#waiting = undefined
    if (waiting === undefined) this.#lines.push(line)
    else waiting.take(line)
  }
}
