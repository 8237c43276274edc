// Drawing pad for mouse, touch, pen and keyboard; it also takes dropped, pasted or chosen images.

const PAD = 280;
const KEY_STEP = 8;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

class Pad {
  // `view` shows messages; `onRow` gets the pixels of the drawing, or null if it is empty;
  // `onImage` is called before an image file is read.
  constructor(facts, view, onRow, onImage) {
    this.shape = facts.shape;
    this.frame = facts.frame;
    this.view = view;
    this.onRow = onRow;
    this.onImage = onImage;
    this.canvas = byId("pad");
    this.height = Math.round((PAD * this.shape[0]) / this.shape[1]);
    this.canvas.width = PAD;
    this.canvas.height = this.height;
    this.canvas.style.aspectRatio = `${PAD} / ${this.height}`;
    this.strokes = [];
    this.stroke = null; // the unfinished stroke
    this.pointer = null; // id of the pointer that draws it; null for the keyboard
    this.pen = null; // position of the keyboard's pen
    this.ink = null; // ink of an image file, until a stroke replaces it
    this.listen();
    this.paint();
    this.paintSeen(null);
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => this.lift(event));
    }
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => this.putPenAway());
    byId("clear").addEventListener("click", () => this.clear());
    byId("undo").addEventListener("click", () => this.undo());
    byId("file").addEventListener("change", (event) => this.take(event.target.files[0]));
    document.addEventListener("paste", (event) => this.takeFrom(event.clipboardData));
    document.addEventListener("dragover", (event) => {
      event.preventDefault();
      document.body.classList.add("dropping");
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) document.body.classList.remove("dropping");
    });
    document.addEventListener("drop", (event) => {
      event.preventDefault(); // otherwise the browser opens the file in place of the page
      document.body.classList.remove("dropping");
      this.takeFrom(event.dataTransfer);
    });
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return [((event.clientX - box.left) * PAD) / box.width,
      ((event.clientY - box.top) * this.height) / box.height];
  }

  press(event) {
    if (this.pointer !== null || event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.pointer = event.pointerId;
    this.pen = null;
    this.begin(this.point(event));
  }

  move(event) {
    if (event.pointerId !== this.pointer || !this.stroke) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const one of events.length ? events : [event]) this.stroke.push(this.point(one));
    this.drawn();
  }

  lift(event) {
    if (event.pointerId !== this.pointer) return;
    this.pointer = null;
    this.stroke = null;
  }

  key(event) {
    const step = ARROWS[event.key];
    if (step) {
      this.movePen(...step);
    } else if (event.key === " ") {
      this.togglePen();
    } else if (event.key === "Escape" || event.key === "Delete") {
      this.clear();
    } else {
      return;
    }
    event.preventDefault();
  }

  movePen(right, down) {
    const [x, y] = this.pen ?? [PAD / 2, this.height / 2];
    this.pen = [Math.max(0, Math.min(PAD, x + KEY_STEP * right)),
      Math.max(0, Math.min(this.height, y + KEY_STEP * down))];
    if (!this.stroke) return this.paint();
    this.stroke.push(this.pen);
    return this.drawn();
  }

  // Puts the keyboard's pen down, or lifts it.
  togglePen() {
    this.pen ??= [PAD / 2, this.height / 2];
    if (!this.stroke) return this.begin(this.pen);
    this.stroke = null;
    return this.paint();
  }

  putPenAway() {
    if (this.pointer === null) this.stroke = null;
    this.pen = null;
    this.paint();
  }

  begin(point) {
    this.ink = null;
    this.stroke = [point];
    this.strokes.push(this.stroke);
    this.drawn();
  }

  drawn() {
    this.paint();
    this.show(inkOfStrokes(this.strokes, this.shape, this.frame));
  }

  undo() {
    this.reset(this.strokes.slice(0, -1));
    this.drawn();
    this.canvas.focus();
  }

  clear() {
    this.reset([]);
    this.drawn();
    this.canvas.focus();
  }

  reset(strokes) {
    this.strokes = strokes;
    this.stroke = null;
    this.ink = null;
  }

  takeFrom(transfer) {
    const files = Array.from(transfer?.files ?? []);
    if (!files.length) return;
    this.take(files.find((one) => one.type.startsWith("image/")) ?? files[0]);
  }

  async take(file) {
    if (!file) return;
    byId("file").value = ""; // otherwise choosing the same file again fires no event
    this.onImage();
    let ink = null;
    let trouble = `Nothing stands out in ${file.name}.`;
    try {
      ink = await inkOfFile(file, this.shape, this.frame);
    } catch {
      trouble = `${file.name} is no image that this browser can read.`;
    }
    this.put(ink);
    if (!ink) this.view.say(trouble);
  }

  // Replaces the strokes by an image.
  put(ink) {
    this.reset([]);
    this.ink = ink;
    this.paint();
    this.show(ink);
  }

  show(ink) {
    byId("undo").disabled = !this.strokes.length;
    byId("clear").disabled = !this.strokes.length && !this.ink;
    this.paintSeen(ink);
    this.onRow(ink && valuesOf(ink, this.frame));
  }

  paintSeen(ink) {
    paintPicture(byId("seen"), ink ?? new Float64Array(this.shape[0] * this.shape[1]),
      this.shape, 1);
  }

  paint() {
    const context = this.canvas.getContext("2d");
    context.clearRect(0, 0, PAD, this.height);
    if (this.ink) {
      const small = new OffscreenCanvas(1, 1);
      paintPicture(small, this.ink, this.shape, 1);
      context.imageSmoothingEnabled = false;
      context.drawImage(small, 0, 0, PAD, this.height);
    }
    drawStrokes(context, this.strokes, PAD * 0.08);
    if (this.pen) {
      context.lineWidth = 2;
      context.beginPath();
      context.arc(...this.pen, this.stroke ? 6 : 10, 0, 2 * Math.PI);
      context.stroke();
    }
  }
}
