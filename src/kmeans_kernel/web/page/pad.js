// The pad: draw with mouse, touch, pen or keys; drop, paste or choose an image.

const PAD = 280;
const KEY_STEP = 8;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

class Pad {
  constructor(facts, onRow) {
    this.shape = facts.shape;
    this.frame = facts.frame;
    this.onRow = onRow; // called with a row, or with null when there is nothing
    this.canvas = byId("pad");
    this.strokes = [];
    this.ink = null; // of an image; strokes come in its place
    this.pen = null; // where the keys have moved to
    this.penDown = false;
    this.listen();
    this.paint();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, () => { this.drawing = false; });
    }
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => { this.pen = null; this.paint(); });
    byId("clear").addEventListener("click", () => this.clear());
    byId("undo").addEventListener("click", () => this.undo());
    byId("file").addEventListener("change", (event) => this.take(event.target.files[0]));
    document.addEventListener("paste", (event) => this.takeFrom(event, event.clipboardData));
    document.addEventListener("dragover", (event) => {
      event.preventDefault();
      document.body.classList.add("dropping");
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) document.body.classList.remove("dropping");
    });
    document.addEventListener("drop", (event) => {
      document.body.classList.remove("dropping");
      this.takeFrom(event, event.dataTransfer);
    });
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientX - box.left) * PAD) / box.width,
      ((event.clientY - box.top) * PAD) / box.height];
  }

  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.drawing = true;
    this.begin(this.point(event));
  }

  move(event) {
    if (!this.drawing) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const one of events.length ? events : [event]) this.strokes.at(-1).push(this.point(one));
    this.drawn();
  }

  key(event) {
    const step = ARROWS[event.key];
    if (step) {
      const [x, y] = this.pen ?? [PAD / 2, PAD / 2];
      this.pen = [x + KEY_STEP * step[0], y + KEY_STEP * step[1]]
        .map((at) => Math.max(0, Math.min(PAD, at)));
      if (this.penDown) this.strokes.at(-1).push(this.pen);
    } else if (event.key === " ") {
      this.pen ??= [PAD / 2, PAD / 2];
      this.penDown = !this.penDown;
      if (this.penDown) this.begin(this.pen);
    } else if (event.key === "Escape" || event.key === "Delete") {
      this.clear();
    } else {
      return;
    }
    event.preventDefault();
    this.drawn();
  }

  begin(point) {
    this.ink = null;
    this.strokes.push([point]);
    this.drawn();
  }

  drawn() {
    this.paint();
    this.show(inkOfStrokes(this.strokes, this.shape, this.frame));
  }

  undo() {
    this.strokes.pop();
    this.ink = null;
    this.penDown = false;
    this.drawn();
  }

  clear() {
    this.strokes = [];
    this.undo();
  }

  takeFrom(event, transfer) {
    const file = Array.from(transfer?.files ?? []).find((one) => one.type.startsWith("image/"));
    if (!file) return;
    event.preventDefault();
    this.take(file);
  }

  async take(file) {
    if (!file) return;
    byId("file").value = ""; // so that the same may be chosen again
    try {
      this.put(await inkOfFile(file, this.shape, this.frame));
    } catch {
      byId("answer-note").textContent = `${file.name} is no image that this browser can read.`;
    }
  }

  // Shows an image in place of strokes.
  put(ink) {
    this.strokes = [];
    this.ink = ink;
    this.paint();
    this.show(ink);
  }

  show(ink) {
    byId("undo").disabled = !this.strokes.length;
    byId("clear").disabled = !this.strokes.length && !this.ink;
    paintPicture(byId("seen"), ink ?? new Float64Array(this.shape[0] * this.shape[1]),
      this.shape, 1);
    this.onRow(ink && ink.map((value) => value * this.frame.ink));
  }

  paint() {
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, PAD, PAD);
    if (this.ink) {
      const small = new OffscreenCanvas(1, 1);
      paintPicture(small, this.ink, this.shape, 1);
      context.imageSmoothingEnabled = false;
      context.drawImage(small, 0, 0, PAD, PAD);
    }
    drawStrokes(context, this.strokes, PAD * 0.08);
    if (this.pen) {
      context.lineWidth = 2;
      context.beginPath();
      context.arc(...this.pen, this.penDown ? 6 : 10, 0, 2 * Math.PI);
      context.stroke();
    }
  }
}
