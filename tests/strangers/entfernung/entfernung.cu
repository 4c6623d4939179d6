/*
 * Abstände vieler Punkte zu einer Geraden durch den Ursprung.
 * Der Winkel alpha heißt hier 'winkel'; größere Felder brauchen 64 Bit.
 */
__global__ void berechneAbstand(const double2 *punkte, double *abstand, double winkel, int anzahl)
{
    // laufender Index über alle Punkte
    int i = blockIdx.x * BLOCKGROESSE + threadIdx.x;
    if (i >= anzahl) return;

    double d = punkte[i].x * sin(winkel) - punkte[i].y * cos(winkel);
    abstand[i] = fabs(d);    // stets >= 0 (0,1 µm genau)
}
