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
